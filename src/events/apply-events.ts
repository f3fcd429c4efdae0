import type { ApplyWork } from '../reconcile/status-document.ts';
import type { EventBody } from './event.ts';

/** Returns the events of an apply between two of its reports. Another apply begins with its first report. Pure. */
export function applyEvents(before: ApplyWork | undefined, now: ApplyWork | undefined): EventBody[] {
  if (!now) return [];
  const { generation, steps, ...end } = now;
  const known = before?.generation === generation ? before : undefined;
  const running = { generation, state: 'running' } as const;
  return [
    ...(known ? [] : [{ type: 'apply', apply: running } as const]),
    ...steps.slice(known?.steps.length ?? 0).map((step) => ({ type: 'apply', apply: { ...running, step } }) as const),
    ...(now.state !== 'running' && known?.state !== now.state
      ? [{ type: 'apply', apply: { generation, ...end } } as const]
      : []),
  ];
}
