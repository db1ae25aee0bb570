"""The order of effects: reserve, bind noise, release, once for every chunk. Pure: no clock, file, log or randomness."""
