//! Prose of the technical report: execution, measurement methods, interpretation.

use super::parameters;
use crate::flags;
use crate::format::ABSENT;
use crate::model::{Results, SCHEMA_VERSION};
use crate::process::Role;

/// Renders scope, set-up, methodology and test types.
pub(super) fn before(results: &Results) -> String {
    let mut text = String::from(
        "## Scope\n\nThis report documents a repeated benchmark campaign executed by `telpher bench`. Each \
         case in the matrix is rerun several times to estimate mean performance, sample variance, and \
         confidence intervals.\n\n",
    );
    text += &setup(results);
    text += "## Measurement Methodology\n\n";
    text += &execution(results);
    text += SENDER;
    text += RESPONDER;
    text += LATENCY;
    text += &cpu(results);
    text += &statistics(results);
    text += "## Test Types\n\n";
    for (name, title, words) in TYPES {
        if results
            .cases
            .iter()
            .any(|result| result.case.mode.name == name)
        {
            text += &format!("### {title}\n\n{words}\n\n");
        }
    }
    text
}

/// Renders how to interpret the results, and the meaning of the raised flags.
pub(super) fn after(results: &Results) -> String {
    let mut text = String::from(INTERPRETATION);
    let raised = flags::kinds(results);
    if !raised.is_empty() {
        text += "\n### Flags\n\n";
        for flag in raised {
            text += &format!("- `{flag}`: {}\n", flag.meaning());
        }
    }
    text
}

fn setup(results: &Results) -> String {
    let mut text = String::from("## Test Setup\n\n");
    for (name, value) in results
        .setup
        .notes
        .iter()
        .map(|(name, value)| (name.as_str(), value))
    {
        text += &format!("- {name}: {value}\n");
    }
    for (name, value) in parameters(results) {
        text += &format!("- {name}: `{value}`\n");
    }
    for (name, value) in results.environment.facts() {
        text += &format!("- {name}: {value}\n");
    }
    text += &format!(
        "- Adaptive capacity sweep enabled: `{}`\n",
        !results.sweeps.is_empty()
    );
    text + &format!("- Layout of `results.json`: version {SCHEMA_VERSION}\n\n")
}

fn execution(results: &Results) -> String {
    let repeats = results
        .setup
        .repeats
        .map_or(ABSENT.to_owned(), |repeats| repeats.to_string());
    let duration = results.setup.duration.as_deref().unwrap_or(ABSENT);
    let order = if results.interleaved() {
        "Repeats of different cases took turns, so that a drift of the machine reaches all cases alike."
    } else {
        "The repeats of a case ran one after the other, before those of the next case."
    };
    format!(
        "### Execution Model\n\nEach benchmark case in the matrix is executed {repeats} times. A benchmark \
         case is uniquely identified by:\n\n- target and area\n- mode\n- client count and messages in \
         flight\n- payload size\n- configured rate\n\n{order} Each individual run uses a configured \
         duration of {duration}.\n\n"
    )
}

const SENDER: &str = "### Sender-Side Measurement

For each run:

1. The sender connects, subscribes and warms up. This set-up is timed apart and is not part of the window.
2. It opens the send window and sends; at a configured rate, each message has an intended time and every \
client its share of the rate.
3. The window closes with the last completion, or with the end of the schedule if that is later.
4. It counts the messages that completed and, by kind, those that did not.
5. It computes sender throughput as:

$$
\\text{sender mps} = \\frac{\\text{completed messages}}{\\text{send window in seconds}}
$$

The suite that this report follows divides by a duration that includes connecting and closing; ours does \
not (in its smoke report the difference is 5 to 7 % at one second per run). Set-up is printed as `setup_ms`.

";

const RESPONDER: &str = "### Responder-Side Measurement

Where a responder counts (request-reply and fire-and-forget), for each run:

1. The sink counts received messages; warm-up is not counted.
2. It records the timestamp of the first message received.
3. It records the timestamp of the last message received.
4. It computes active receive throughput over the active message window, not over its lifetime:

$$
\\text{sink mps} = \\frac{\\text{received messages}}{\\text{last message time} - \\text{first message time}}
$$

This formula counts n messages over n - 1 intervals and so reads high, by 1 % at 100 messages. It is kept \
for comparison; `steady_mps` divides n - 1 by the same time. With fewer than two messages there is no \
active window and both are absent.

Write mode runs without a responder. There, the sender-completed rate is the only throughput.

";

const LATENCY: &str = "### Latency Measurement

Latencies are recorded in nanoseconds in an HDR histogram with three significant figures, one per worker, \
merged after the run; the number recorded is checked against the number completed. At a \
        configured rate there are two: *service* from the real send, which the tables show, and *response* from the \
        intended send, which includes the wait that a slow answer causes for the messages after it. Run-level \
percentiles are averaged over runs; percentiles over the messages of all runs are labelled pooled.

";

fn cpu(results: &Results) -> String {
    let roles = Role::ALL.into_iter().filter(|role| {
        let of_role =
            |usage: &crate::process::Usage| usage.roles.iter().any(|one| one.role == *role);
        let runs = results.cases.iter().flat_map(|result| &result.runs);
        runs.filter_map(|run| run.measured.as_ref()?.usage.as_ref())
            .any(of_role)
    });
    let roles: Vec<_> = roles
        .map(|role| format!("- {} process\n", role.name()))
        .collect();
    if roles.is_empty() {
        return "### CPU Measurement\n\nCPU usage was not collected.\n\n".to_owned();
    }
    format!(
        "### CPU Measurement\n\nCPU usage is collected for the processes involved:\n\n{}\nThe CPU time of \
         each process, user plus system and all its threads, is read from its CPU clock \
         (`clock_getcpuclockid`, in nanoseconds) at both edges of the window. Average CPU percent for each \
         process is computed as:\n\n$$\n\\text{{cpu percent}} = 100 \\cdot \\frac{{\\text{{cpu time \
         consumed during the window}}}}{{\\text{{window in seconds}}}}\n$$\n\nThe total CPU percent for a \
         run is the sum over the processes; 100 is one core. CPU per message divides the CPU time by the \
         observed messages.\n\n",
        roles.concat()
    )
}

fn statistics(results: &Results) -> String {
    let counts: std::collections::BTreeSet<usize> = results
        .cases
        .iter()
        .map(|result| result.summary.runs)
        .collect();
    let counts: Vec<_> = counts.iter().map(usize::to_string).collect();
    let comparisons = if results.comparisons.is_empty() {
        ""
    } else {
        COMPARISONS
    };
    format!(
        "### Statistical Treatment\n\nFor each case, the report computes:\n\n- mean\n- sample variance\n- \
         standard deviation and coefficient of variation\n- minimum, maximum and median\n- Student's t \
         95% confidence interval for the mean\n\nThe sample variance is:\n\n$$\ns^2 = \
         \\frac{{1}}{{n-1}} \\sum_{{i=1}}^n (x_i - \\bar{{x}})^2\n$$\n\nThe Student's t 95% confidence \
         interval is:\n\n$$\n\\bar{{x}} \\pm t_{{1-\\alpha/2, n-1}} \\cdot \
         \\frac{{s}}{{\\sqrt{{n}}}}\n$$\n\nwhere $\\alpha = 0.05$ and $n$ is {} in this report. Intervals \
         are cut at zero; below two runs there is none (`n/a`).\n\n{comparisons}",
        counts.join(", ")
    )
}

const COMPARISONS: &str =
    "Two cases are compared by the ratio $\\rho$ of their means $a$ and $b$. Its 95% interval holds the \
     ratios for which a t test with unequal variances does not reject $a = \\rho b$:

$$
(\\bar{a} - \\rho \\bar{b})^2 \\le t_{1-\\alpha/2, \\nu}^2 \\left( \\frac{s_a^2}{n_a} + \\rho^2 \
\\frac{s_b^2}{n_b} \\right)
$$

with the degrees of freedom $\\nu$ of Welch and Satterthwaite. The verdict is faster or slower when the \
interval excludes 1, and otherwise no difference shown, which is not a proof of equality.

";

const TYPES: [(&str, &str, &str); 8] = [
    (
        "request-reply",
        "Request-Reply",
        "Request-reply sends one message and waits for the reply before the same slot sends the next. It \
         measures round-trip behavior.",
    ),
    (
        "fire-and-forget",
        "Fire-And-Forget",
        "Fire-and-forget sends one-way traffic to a sink that counts. It measures end-to-end one-way \
         delivery through the node without waiting for per-message replies.",
    ),
    (
        "write",
        "Write",
        "Write measures how fast the sender can successfully write messages into the node without any sink \
         or responder process. In this mode, sender-completed throughput is the primary metric.",
    ),
    (
        "serial",
        "Serial",
        "Serial calls go one after the other, each waiting for its reply.",
    ),
    (
        "publish",
        "Publish",
        "Publish sends one-way traffic, as fast as it is accepted, to all of several subscribers. The \
         count is that of the subscribers: one message to ten of them counts ten times.",
    ),
    (
        "blocking",
        "Blocking",
        "Blocking calls are serial calls on a blocking socket without a runtime.",
    ),
    (
        "concurrent",
        "Concurrent",
        "Concurrent calls are awaited together, a bounded number at a time, with results in order.",
    ),
    (
        "callback",
        "Callback",
        "Callback calls hand each reply to a callback, a bounded number at a time.",
    ),
];

const INTERPRETATION: &str = "## Result Interpretation

- For paced request-reply, the primary metrics are sender-observed latency statistics, especially mean, p50, \
and p99 latency.
- For fire-and-forget, write and every unpaced mode, the primary metric is throughput; at a configured rate \
it cannot exceed the schedule, and capacity comes from a sweep or an unpaced run.
- CPU percentages are averages over the window; CPU per message is what compares systems that run at \
different rates.
- Confidence intervals estimate the uncertainty around the reported means under repeated execution on this \
machine, on this day; they say nothing about other machines.
- For sink-backed modes, sink throughput remains the better end-to-end capacity indicator when it diverges \
from sender throughput.
";
