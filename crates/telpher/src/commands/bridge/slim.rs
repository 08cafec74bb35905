//! `telpher bridge slim`: lets SLIM applications call an agent, or agents call a SLIM application.

mod args;
mod tls;

use bridge::{Bridge, Options, SlimNode, fill};
use console::{Environment, Exit, Failure, Signals};
use model::Name;
use slim::session::Identity;

use crate::commands::target::{agent_name, block_on};
pub(crate) use args::Args;

pub(crate) fn run(args: Args, environment: &Environment) -> Result<(), Failure> {
    let agent = agent_name(&args.agent)?;
    let slim_name = application(args.slim_name.as_deref().unwrap_or(agent.base()))?;
    let to = args.to.as_deref().map(application).transpose()?;
    let identity = identity(&args, &slim_name)?;
    let slim_token = args.slim_token.clone();
    let variable = || {
        Some(
            environment
                .get("TELPHER_SLIM_TOKEN")?
                .to_string_lossy()
                .into_owned(),
        )
    };
    let node = SlimNode::new(
        &args.slim,
        slim_token.or_else(variable),
        &args.slim_tls.files(),
    )?;
    let options = Options {
        agent,
        slim_name,
        to,
        deadline: args.deadline,
        one_way: args.one_way,
        reliable: args.reliable,
        sessions_max: args.sessions_max as usize,
        requests_max: args.requests_max as usize,
        format: args.format,
    };
    block_on(async {
        let mut signals = Signals::listen()?;
        let client = args.target.connect(environment).await?;
        let mut bridge = Bridge::start(options, identity, client, node).await?;
        tokio::select! {
            ended = bridge.run() => return ended,
            () = signals.next() => {}
        }
        tokio::select! {
            () = bridge.finish() => {}
            () = signals.next() => {}
        }
        bridge.print_totals()
    })
}

/// Parses the name of a SLIM application, which has three parts.
fn application(text: &str) -> Result<Name, Failure> {
    let name = agent_name(text)?;
    match name.instance() {
        None => Ok(name),
        Some(_) => Err(Failure::new(
            Exit::Usage,
            format!("`{text}` has an instance, which SLIM assigns itself"),
        )
        .hint("write org/namespace/app")),
    }
}

fn identity(args: &Args, slim_name: &Name) -> Result<Identity, Failure> {
    let path = args.secret_file.display();
    let unusable = |problem: &dyn std::fmt::Display| {
        Failure::new(Exit::Usage, format!("the secret in {path}: {problem}")).hint(
            "--secret-file FILE has the secret of the SLIM applications, in the form that \
             `create_app_with_secret` takes",
        )
    };
    let bytes = std::fs::read(&args.secret_file).map_err(|error| unusable(&error))?;
    let secret = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
    let mut entropy = [0; 48];
    fill(&mut entropy)?;
    Identity::new(slim_name.base(), secret, &entropy).map_err(|error| unusable(&error))
}
