//! Examples in the help of the `telpher quota` commands.

pub(super) const TAKE: &str = "\
Examples:
  telpher quota take acme/search/bot 1                       take 1 of the unit `requests`
  telpher quota take acme/search/bot tokens=1200 --hold 60s  reserve until settled
  telpher quota take 'acme/search/bot?run=7' 1 --wait 10s    wait until the limits admit it";

pub(super) const SETTLE: &str = "\
Example, with the hold that `take --hold` has printed:
  telpher quota settle \"$hold\" tokens=734";

pub(super) const PEEK: &str = "\
Examples:
  telpher quota peek acme/search/bot
  telpher quota peek acme/search/bot --json";

pub(super) const SET: &str = "\
Example, for the limit `agent-rps`:
  telpher quota set agent-rps acme/search/bot --capacity 500 --for 2h --reason 'launch'";

pub(super) const UNSET: &str = "\
Example:
  telpher quota unset agent-rps acme/search/bot --reason 'the launch is over'";

pub(super) const RESET: &str = "\
Example:
  telpher quota reset acme/search/bot --reason 'a bug took too much'";

pub(super) const FACTOR: &str = "\
Example, half of the limit `agent-rps`:
  telpher quota factor agent-rps 0.5 --for 10m --reason 'the provider is slow'";

pub(super) const HALT: &str = "\
Example, every agent of a namespace:
  telpher quota halt acme/search --reason 'it loops'";

pub(super) const RESUME: &str = "\
Example:
  telpher quota resume acme/search --reason 'repaired'";

pub(super) const TOP: &str = "\
Examples:
  telpher quota top
  telpher quota top --by denied";

pub(super) const USAGE: &str = "\
Examples:
  telpher quota usage                                      the last 30 days, a row per day
  telpher quota usage --by subject --limit spend           the sum of each subject
  telpher quota usage --from 2026-11-01 --to 2026-11-30 --by subject --subject 'acme/*/*' --csv
                                                           a bill of one organization
  telpher quota usage --by limit --json

Days are in UTC, and usage is kept for 90 days. The subject of a row is org/namespace/agent, also \
for limits on organizations, namespaces and runs. A hold counts when it ends, with its true cost. \
Slots (concurrency) are not counted. A node counts what it has admitted: add up the nodes that \
share limits in Redis.";

pub(super) const WATCH: &str = "\
Examples:
  telpher quota watch
  telpher quota watch --json | jq .";

pub(super) const POLICIES: &str = "\
Examples:
  telpher quota policies > limits.json
  telpher quota policies --set limits.json --reason 'new plan'";
