"""Parts of `compare_answers.py`: what both revisions are asked, how they are asked, and what became of an answer."""
