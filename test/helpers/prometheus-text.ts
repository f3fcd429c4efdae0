/** A metric as the text format has it. */
export interface Metric {
  type: string;
  help: string;
  /** Value by name and labels as written, such as `x_total{how="set"}`. */
  samples: Record<string, number>;
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"';
const SAMPLE = new RegExp(`^(${NAME})(\\{${LABEL}(?:,${LABEL})*\\})? (\\S+)$`);

/** Reads the text format of Prometheus 0.0.4 strictly. Throws an error that names the line. */
export function parsePrometheus(text: string): Record<string, Metric> {
  const metrics: Record<string, Metric> = {};
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  let name = '';
  for (const line of text.split('\n')) {
    const [, helped, help] = new RegExp(`^# HELP (${NAME}) (.+)$`).exec(line) ?? [];
    const [, typed, type] = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram)$`).exec(line) ?? [];
    if (helped !== undefined && help !== undefined) {
      if (helped in metrics) throw new Error(`twice: ${line}`);
      name = helped;
      metrics[name] = { type: '', help, samples: {} };
    } else if (typed !== undefined && type !== undefined) {
      const metric = metrics[typed];
      if (typed !== name || !metric || metric.type !== '') throw new Error(`out of place: ${line}`);
      metric.type = type;
    } else if (line !== '') {
      const [, sample = '', labels = '', value = ''] = SAMPLE.exec(line) ?? [];
      const metric = metrics[name];
      const suffix = sample.slice(name.length);
      const suffixes = metric?.type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
      if (!metric || !sample.startsWith(name) || !suffixes.includes(suffix)) throw new Error(`unexpected: ${line}`);
      if (Number.isNaN(Number(value)) || sample + labels in metric.samples) throw new Error(`invalid: ${line}`);
      metric.samples[sample + labels] = Number(value);
    }
  }
  for (const [each, { type, samples }] of Object.entries(metrics)) {
    if (type === '') throw new Error(`${each} has no type`);
    if (type === 'counter' && !each.endsWith('_total')) throw new Error(`${each} does not end in _total`);
    if (Object.values(samples).some((value) => type !== 'gauge' && value < 0)) throw new Error(`${each} is negative`);
  }
  return metrics;
}
