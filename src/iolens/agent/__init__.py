"""The sampler on a server: samples on the clock, spools raw counters, and has a short-lived child ship them."""
