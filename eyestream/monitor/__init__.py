"""A page that shows what an application receives: read by the sdk, served on the loopback alone."""
