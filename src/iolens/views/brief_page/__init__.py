"""What the pages of a job and a user share: advice, verdict and what is missing."""
