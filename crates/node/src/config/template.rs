//! A configuration file to start from.

use super::SECTIONS;

const HEAD: &str = "\
# Telpher's configuration. Each line shows a default: uncomment what you change.
#
# `native.listen` is also the variable TELPHER_NATIVE_LISTEN and the flag --native-listen, and so
# on for every option. A flag wins over a variable, a variable over this file.
";

/// Every option with its documentation and default, commented out.
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
