"""Integer noise on the coordinates of a projected chunk: the private step that LPA, CFPA, DCFPA and FPA share. Pure."""
