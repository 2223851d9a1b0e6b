"""What the pages of a job and a user share: times, advice, verdict and what is missing."""
