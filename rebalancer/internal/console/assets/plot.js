// Plots over time, drawn by uPlot (vendor/). Colours come from the style sheet, so that dark mode has its own.

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = i => css("--s" + i % 8);

function axes(unit) {
  const line = { stroke: css("--faint"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 } };
  return [{ ...line, space: 80 }, { ...line, size: 56, values: (_, ticks) => ticks.map(t => t + unit) }];
}

function mount(el, options, data) {
  el.replaceChildren();
  const width = () => Math.max(240, el.clientWidth - 12);
  const plot = new uPlot({ width: width(), height: 220, cursor: { y: false }, legend: { show: false }, ...options }, data, el);
  const observer = new ResizeObserver(() => plot.setSize({ width: width(), height: 220 }));
  observer.observe(el);
  return { update: d => plot.setData(d), end: () => { observer.disconnect(); plot.destroy(); } };
}

// stacked draws values (one list per name) as areas on top of each other; marks are times with a line.
export function stacked(el, names, unit, max, marks) {
  const stack = values => {
    const sum = values[0] ? values[0].map(() => 0) : [];
    return values.map(list => list.map((v, i) => (sum[i] += v || 0)));
  };
  const order = names.map((_, i) => names.length - 1 - i); // the highest sum is drawn first
  const plot = mount(el, {
    scales: { y: { range: (_, lo, hi) => [0, max || Math.max(1, hi * 1.08)] } },
    axes: axes(unit),
    series: [{}, ...order.map(i => ({ label: names[i], stroke: colour(i), fill: colour(i), width: 0, points: { show: false } }))],
    hooks: { draw: [u => drawMarks(u, marks())] },
  }, [[], ...names.map(() => [])]);
  return { ...plot, update: (times, values) => { const s = stack(values); plot.update([times, ...order.map(i => s[i])]); } };
}

// lines draws one line per name.
export function lines(el, names, unit) {
  const plot = mount(el, {
    scales: { y: { range: (_, lo, hi) => [0, Math.max(1, hi * 1.08)] } },
    axes: axes(unit),
    series: [{}, ...names.map((n, i) => ({ label: n.label, stroke: n.colour === undefined ? css("--bad") : colour(n.colour), dash: n.dash, width: 1.5, points: { show: false } }))],
  }, [[], ...names.map(() => [])]);
  return { ...plot, update: (times, values) => plot.update([times, ...values]) };
}

function drawMarks(u, marks) {
  u.ctx.save();
  u.ctx.strokeStyle = css("--ink");
  u.ctx.setLineDash([4, 4]);
  for (const at of marks) {
    const x = u.valToPos(at, "x", true);
    if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
    u.ctx.beginPath();
    u.ctx.moveTo(x, u.bbox.top);
    u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
    u.ctx.stroke();
  }
  u.ctx.restore();
}
