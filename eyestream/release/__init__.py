"""The order of effects: reserve, bind noise, release, once for every row. Pure: no clock, file, log or randomness."""
