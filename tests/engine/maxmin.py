"""Max-min fair fluid flows, solved on their own: the oracle of the engine's link sharing.

Reads JSON from standard input,
  {"sets": [{"links": [capacity in B/s, ...],
             "flows": [{"start": s, "bytes": B, "links": [index, ...], "after": [index of a flow, ...]}, ...]}, ...]}
and prints {"ends": [[date in s, ...], ...]}: when each flow has carried its bytes. "after" may be left out. Standard library only, and nothing
of the product: the algorithm is progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2), solved anew
from nothing whenever a flow starts or ends.
"""

import heapq
import json
import sys


def fair_rates(capacities, paths):
    """Rate of each flow: fill all alike until a link is full, freeze the flows on it, go on with the rest.

    capacities: link -> B/s; paths: flow -> list of links. Every flow is frozen once, by its bottleneck.
    """
    left = {}
    users = {}
    for flow, path in paths.items():
        for link in path:
            left.setdefault(link, capacities[link])
            users.setdefault(link, set()).add(flow)
    rates = {}
    while len(rates) < len(paths):
        # The link that offers its unfrozen flows the least is full first.
        share, bottleneck = min((left[link] / len(flows), link) for link, flows in users.items() if flows)
        for flow in sorted(users[bottleneck]):
            rates[flow] = share
            for link in paths[flow]:
                left[link] -= share
                users[link].discard(flow)
    return rates


def completion_dates(capacities, flows):
    """Date at which each flow ends. A flow starts "start" seconds after the last of those that it is "after" has ended.

    A flow without links or bytes ends when it starts.
    """
    ends = [None] * len(flows)
    starts = [flow["start"] for flow in flows]
    blockers = [len(flow.get("after", [])) for flow in flows]
    followers = [[] for _ in flows]
    for index, flow in enumerate(flows):
        for earlier in flow.get("after", []):
            followers[earlier].append(index)
    waiting = [(starts[index], index) for index in range(len(flows)) if blockers[index] == 0]
    heapq.heapify(waiting)

    def end(index, date):
        ends[index] = date
        for follower in followers[index]:
            starts[follower] = max(starts[follower], date + flows[follower]["start"])
            blockers[follower] -= 1
            if blockers[follower] == 0:
                heapq.heappush(waiting, (starts[follower], follower))

    remaining = {}
    now = 0.0
    while waiting or remaining:
        if not remaining:
            now = max(now, waiting[0][0])
        while waiting and waiting[0][0] <= now:
            date, index = heapq.heappop(waiting)
            if flows[index]["links"] and flows[index]["bytes"] > 0:
                remaining[index] = flows[index]["bytes"]
            else:
                end(index, date)
        if not remaining:
            continue
        rates = fair_rates(capacities, {index: flows[index]["links"] for index in remaining})
        # Until the first flow ends or the next one starts.
        first_end = min(remaining[index] / rates[index] for index in remaining)
        step = first_end
        if waiting:
            step = min(step, waiting[0][0] - now)
        reached = waiting[0][0] if waiting and step < first_end else now + step
        for index in sorted(remaining):
            time_left = remaining[index] / rates[index]
            # Flows that end together differ by rounding only.
            if time_left <= step * (1 + 1e-12):
                end(index, now + time_left)
                del remaining[index]
            else:
                remaining[index] -= rates[index] * step
        now = reached
    if None in ends:
        raise ValueError("flows wait for each other")
    return ends


def main():
    problem = json.load(sys.stdin)
    result = []
    for one in problem["sets"]:
        capacities = [float(capacity) for capacity in one["links"]]
        flows = [
            {"start": float(flow["start"]), "bytes": float(flow["bytes"]), "links": flow["links"],
             "after": flow.get("after", [])}
            for flow in one["flows"]
        ]
        result.append(completion_dates(capacities, flows))
    json.dump({"ends": result}, sys.stdout)


if __name__ == "__main__":
    main()
