//! The configuration file that `telpher config init` prints.

use super::SECTIONS;

const HEAD: &str = "\
# Configuration of Telpher. Each line shows a default; uncomment a line to change it.
#
# Each option is also an environment variable and a flag: `native.listen` is TELPHER_NATIVE_LISTEN
# and --native-listen. A flag overrides a variable, and a variable overrides this file.
";

/// Returns a file with every option, its description and its default, commented out.
pub fn template() -> String {
    let mut text = HEAD.to_owned();
    for section in SECTIONS {
        text.push('\n');
        if let Some(table) = section.specs.first().and_then(|spec| spec.table()) {
            comment(&mut text, &section.doc());
            text.push_str(&format!("[{table}]\n"));
        }
        for spec in section.specs {
            comment(&mut text, &spec.doc());
            let default = spec.toml(&super::Config::default());
            text.push_str(&format!("# {} = {default}\n", spec.leaf()));
        }
    }
    text
}

/// Appends prose as comment lines of at most 100 columns.
fn comment(text: &mut String, prose: &str) {
    let mut line = String::from("##");
    for word in prose.split_whitespace() {
        if line.len() + 1 + word.len() > 100 {
            text.push_str(&line);
            text.push('\n');
            line = String::from("##");
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}
