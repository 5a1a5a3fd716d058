"""Tests of the C++ front end; a package, so that tests share the host compiler and the generators."""
