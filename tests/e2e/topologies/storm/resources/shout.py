"""A bolt of Storm's multilang protocol: emits each text in capitals."""

import json
import os
import sys


def send(**message: object) -> None:
    print(json.dumps(message), "end", sep="\n", flush=True)


for line in sys.stdin:
    message = json.loads(line) if line != "end\n" else {}
    if "pidDir" in message:
        open(os.path.join(message["pidDir"], str(os.getpid())), "w").close()
        send(pid=os.getpid())
    elif message.get("stream") == "__heartbeat":
        send(command="sync")
    elif message:
        number, text = message["tuple"]
        send(command="emit", anchors=[message["id"]], tuple=[number, text.upper()], need_task_ids=False)
        send(command="ack", id=message["id"])
