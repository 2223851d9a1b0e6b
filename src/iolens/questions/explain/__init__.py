"""Why a run was slow."""
