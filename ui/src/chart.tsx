// A plot of series over time.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { bytes, clock } from "./format";
import { theme } from "./theme";
import { useStore } from "./store";

export interface Line {
  label: string;
  values: readonly (number | null)[];
  // Number of the colour, from 0.
  color: number;
}

interface Props {
  title: string;
  // What is shown next to the title: the newest values.
  summary: string;
  times: readonly number[];
  lines: readonly Line[];
  format: (value: number) => string;
}

const HEIGHT = 132;

// Steps between the ticks of sizes.
const BINARY = Array.from({ length: 40 }, (_, power) => 2 ** power);

export function Chart({ title, summary, times, lines, format }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const formatting = useRef(format);
  formatting.current = format;
  const mode = useStore(theme);
  const isBytes = format === bytes;
  const shape = lines.map((line) => `${line.label}:${line.color}`).join("|");
  const data: uPlot.AlignedData = [times.map((time) => time / 1_000), ...lines.map((line) => [...line.values])];
  const newest = useRef(data);
  newest.current = data;

  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    const styles = getComputedStyle(document.documentElement);
    const color = (name: string): string => styles.getPropertyValue(name).trim();
    const axis = { stroke: color("--muted"), grid: { stroke: color("--grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const made = new uPlot(
      {
        width: element.clientWidth || 300,
        height: HEIGHT,
        padding: [8, 8, 0, 0],
        cursor: { drag: { x: false, y: false }, points: { size: 6 }, sync: { key: "telpher" } },
        legend: { show: false },
        hooks: { setCursor: [(self) => setHovered(self.cursor.idx ?? null)] },
        scales: { y: { range: (_, min, max) => [Math.min(0, min ?? 0), Math.max(max ?? 0, 0.001) * 1.1] } },
        axes: [
          { ...axis, size: 24, values: (_, splits) => splits.map((at) => tick(at, (splits.at(-1) ?? 0) - (splits[0] ?? 0))) },
          { ...axis, size: 56, space: 30, ...(isBytes ? { incrs: BINARY } : {}), values: (_, splits) => splits.map((value) => formatting.current(value)) },
        ],
        series: [
          {},
          ...lines.map((line) => ({
            label: line.label,
            stroke: color(`--series-${line.color}`),
            width: 1.5,
            points: { show: false },
            spanGaps: false,
          })),
        ],
      },
      newest.current,
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [shape, mode]);

  useEffect(() => {
    plot.current?.setData(newest.current);
  });

  const valuesAt = (index: number): string => {
    const values = lines.map((line) => {
      const value = line.values[index];
      return `${lines.length > 1 ? `${line.label} ` : ""}${value === null || value === undefined ? "–" : format(value)}`;
    });
    return `${clock(times[index] ?? 0)}  ${values.join("  ")}`;
  };

  return (
    <figure class="panel chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="chart-legend">
          {lines.length > 1 &&
            lines.map((line) => (
              <span key={line.label} class="key">
                <span class={`swatch series-${line.color}`} aria-hidden="true" />
                {line.label}
              </span>
            ))}
        </span>
        <span class="chart-now">{hovered === null ? summary : valuesAt(hovered)}</span>
      </figcaption>
      <div ref={holder} class="plot" role="img" aria-label={`${title} over the last hour, now ${summary}`} />
    </figure>
  );
}

// The time of a tick, with seconds if the axis is short.
function tick(seconds: number, range: number): string {
  const text = clock(seconds * 1_000);
  return range < 240 ? text : text.slice(0, 5);
}
