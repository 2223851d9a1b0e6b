"""Hook of PBS Professional and OpenPBS: samples the Lustre clients of each node when a job begins and when it ends.

Install, as root on the server:

    qmgr -c "create hook iolens event='execjob_prologue,execjob_epilogue'"
    qmgr -c "import hook iolens application/x-python default iolens_hook.py"

It runs on every node of the job. The report is at `iolens job report JOBID`; whatever goes wrong, the job goes on.
"""

import os
import subprocess

import pbs

IOLENS = "/usr/bin/iolens"
FOLDER = "/var/lib/iolens/jobs"  # a folder that every node sees and only root can write to
TIMEOUT_S = 30

event = pbs.event()
job = event.job
begins = event.type == pbs.EXECJOB_PROLOGUE
nodes = dict.fromkeys(place.split("/")[0] for place in str(job.exec_host).split("+"))  # n1/0*4+n2/0*4
environment = {
    **os.environ,
    "IOLENS_JOBS": FOLDER,
    "IOLENS_JOB_NODES": ",".join(nodes),
    "PBS_JOBID": str(job.id),
    "PBS_JOBNAME": str(job.Job_Name),
    "PBS_O_LOGNAME": str(job.euser),
}
command = [IOLENS, "job", "begin"] if begins else [IOLENS, "job", "end", "--no-report"]
try:
    subprocess.run(command, env=environment, timeout=TIMEOUT_S, check=True, capture_output=True)
except (OSError, subprocess.SubprocessError) as error:
    pbs.logmsg(pbs.LOG_WARNING, f"iolens: {error}")
event.accept()
