//! The default address of a node, and the flag for another one.

/// The default address of a node.
pub const URL_DEFAULT: &str = "tcp://127.0.0.1:7400";

/// Returns the flag that selects the node at `url`; empty for the default address.
pub fn flag_for(url: &str) -> String {
    match url {
        URL_DEFAULT => String::new(),
        url => format!(" --url {url}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_address_needs_no_flag() {
        assert_eq!(flag_for(URL_DEFAULT), "");
        assert_eq!(flag_for("unix:///x"), " --url unix:///x");
    }
}
