"""How alerts are shown: checks, lists, rules and tests of receivers."""
