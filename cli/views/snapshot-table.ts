import type { SnapshotRecord } from '../../src/features/snapshots/contract.ts';
import { plainText } from './value.ts';

const GAP = 4;
const LONGEST = 63;

/** The table of `snapshot list`, in the layout of Rancher Desktop's `rdctl`. Widths are in code points. */
export function snapshotTable(records: readonly SnapshotRecord[]): string {
  const rows = [
    ['NAME', 'CREATED', 'DESCRIPTION'],
    ...records.map(({ name, created, description }) => [plainText(name), localTime(created), firstLine(description)]),
  ];
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => [...(row[column] ?? '')].length)) + GAP);
  const pad = (text: string, width: number) => text + ' '.repeat(width - [...text].length);
  return rows
    .map(
      ([name = '', created = '', rest = '']) => `${pad(name, widths[0] ?? 0)}${pad(created, widths[1] ?? 0)}${rest}\n`,
    )
    .join('');
}

/** `Sat, 21 Nov 2026 09:39:22 UTC`, in the local time zone. */
export function localTime(created: string): string {
  const date = new Date(created);
  if (Number.isNaN(date.getTime())) return plainText(created);
  const parts = new Intl.DateTimeFormat('en-US', {
    weekday: 'short',
    day: '2-digit',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
  }).formatToParts(date);
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((each) => each.type === type)?.value ?? '';
  return `${part('weekday')}, ${part('day')} ${part('month')} ${part('year')} ${part('hour')}:${part('minute')}:${part('second')} ${part('timeZoneName')}`;
}

function firstLine(description: string): string {
  const text = description.trim();
  const [line = ''] = text.split('\n', 1);
  const points = [...plainText(line)];
  if (points.length > LONGEST) return `${points.slice(0, LONGEST - 1).join('')}…`;
  return line === text ? points.join('') : `${points.slice(0, LONGEST - 1).join('')}…`;
}
