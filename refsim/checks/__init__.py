"""What a launch is checked for, and how findings are reported."""
