//! Writer of SVG elements.

use std::fmt::Write;

use crate::format::escape;

/// Width of every plot in its own units; a unit is a pixel at full size.
pub(super) const WIDTH: f64 = 520.0;

/// Margin around a picture in a file of its own.
const MARGIN: f64 = 20.0;

/// A picture being drawn.
pub(super) struct Svg {
    body: String,
    pub(super) height: f64,
}

impl Svg {
    pub(super) fn new(height: f64) -> Self {
        Self {
            body: String::new(),
            height,
        }
    }

    /// Renders the picture as an element of a page; `name` is its accessible name.
    pub(super) fn element(&self, name: &str) -> String {
        format!(
            "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            number(WIDTH),
            number(self.height),
            escape(name),
            self.body
        )
    }

    /// Renders the picture as a file, with its name above, a margin and a background.
    pub(super) fn document(&self, name: &str, style: &str) -> String {
        let (width, height) = (WIDTH + 2.0 * MARGIN, self.height + 2.0 * MARGIN + 24.0);
        let [left, top] = [-MARGIN, -MARGIN - 24.0].map(number);
        let [width, height] = [width, height].map(number);
        let mut title = Self::new(0.0);
        title.text([0.0, -18.0], "strong", name);
        format!(
            "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{left} {top} {width} \
             {height}\" role=\"img\" aria-label=\"{}\"><style>{style}</style>\n<rect class=\"plate\" \
             x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/>\n{}{}</svg>\n",
            escape(name),
            title.body,
            self.body
        )
    }

    /// Draws a group of elements in one colour.
    pub(super) fn coloured(&mut self, class: &str, draw: impl FnOnce(&mut Self)) {
        self.put(format_args!("<g class=\"{class}\">"));
        draw(self);
        self.put(format_args!("</g>"));
    }

    pub(super) fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], class: &str) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(number);
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        ));
    }

    pub(super) fn rect(&mut self, [x, y]: [f64; 2], [width, height]: [f64; 2], class: &str) {
        self.rect_titled([x, y], [width, height], class, "");
    }

    /// Draws a rectangle with a tooltip.
    pub(super) fn rect_titled(
        &mut self,
        [x, y]: [f64; 2],
        [width, height]: [f64; 2],
        class: &str,
        title: &str,
    ) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(number);
        let title = titled(title);
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\">{title}</rect>"
        ));
    }

    /// Draws a circle with a tooltip.
    pub(super) fn circle(&mut self, [x, y]: [f64; 2], radius: f64, class: &str, title: &str) {
        let [x, y, radius] = [x, y, radius].map(number);
        let title = titled(title);
        self.put(format_args!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\">{title}</circle>"
        ));
    }

    pub(super) fn polyline(&mut self, points: &[[f64; 2]], class: &str) {
        let points: Vec<_> = points
            .iter()
            .map(|[x, y]| format!("{},{}", number(*x), number(*y)))
            .collect();
        self.put(format_args!(
            "<polyline class=\"{class}\" points=\"{}\"/>",
            points.join(" ")
        ));
    }

    pub(super) fn text(&mut self, [x, y]: [f64; 2], class: &str, text: &str) {
        let [x, y] = [x, y].map(number);
        let text = escape(text);
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
        ));
    }

    /// Draws a whisker along x: a line with a stop at each end.
    pub(super) fn whisker_x(&mut self, [low, high]: [f64; 2], y: f64) {
        self.line([low, y], [high, y], "whisker");
        for x in [low, high] {
            self.line([x, y - 4.0], [x, y + 4.0], "whisker");
        }
    }

    /// Draws a whisker along y.
    pub(super) fn whisker_y(&mut self, x: f64, [low, high]: [f64; 2]) {
        self.line([x, low], [x, high], "whisker");
        for y in [low, high] {
            self.line([x - 3.0, y], [x + 3.0, y], "whisker");
        }
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

fn titled(title: &str) -> String {
    if title.is_empty() {
        String::new()
    } else {
        format!("<title>{}</title>", escape(title))
    }
}

/// Formats a coordinate with at most one decimal. A non-finite value becomes 0, since SVG would
/// draw nothing.
fn number(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
