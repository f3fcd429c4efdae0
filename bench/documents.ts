import { parseDocument as parseYaml } from 'yaml';
import { parseDocument } from '../src/settings/parse.ts';
import { paired, type Result, result } from './measure.ts';

const KEYS = 16_000;

function manyKeys(): string {
  const lines = Array.from({ length: KEYS }, (_, index) => `    example/image-${index}: "1.0.${index}"`);
  return `version: 19\napplication:\n  extensions:\n   installed:\n${lines.join('\n')}\n`;
}

async function time(work: () => void): Promise<number> {
  const start = process.hrtime.bigint();
  work();
  return Number(process.hrtime.bigint() - start) / 1e6;
}

/**
 * A document of 16,000 keys, read with positions and the search for duplicate keys, against the YAML library alone with its own
 * search for duplicates switched off (switched on, it is quadratic).
 */
export async function documents(rounds: number): Promise<Result[]> {
  const text = manyKeys();
  const ours = () =>
    time(() => {
      const { findings, value } = parseDocument(text, 'keys.yaml');
      if (findings.length > 0 || value === undefined) throw new Error(`unexpected findings: ${findings[0]?.message}`);
    });
  const library = () => time(() => void parseYaml(text, { uniqueKeys: false }).toJS());
  await ours();
  await library();
  const figures = await paired(rounds, ours, library);
  return [
    result({
      name: 'document: 16,000 keys',
      compared: 'read with positions and duplicate check / yaml library without either',
      ...figures,
      aim: { sign: '<=', value: 1.5 },
      unit: 'ms',
      rounds,
    }),
  ];
}
