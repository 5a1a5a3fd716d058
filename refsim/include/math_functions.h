// Mathematical functions are built in.
#pragma once
