"""The command line of `iolens-agent.pyz`: one file for servers and compute nodes, standard library only."""
