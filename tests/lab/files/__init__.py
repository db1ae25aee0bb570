"""Files of makers and of data sets."""
