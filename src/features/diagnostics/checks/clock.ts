import { failed, passed } from '../check.ts';
import { probe } from '../http-probe.ts';
import { mobyCheck } from './engine.ts';

/** Tolerated clock difference in milliseconds; the Date header has whole seconds. */
const TOLERANCE = 5_000;

/** The engine's clock matches this computer's: certificates and images have dates. */
export const clock = mobyCheck('CLOCK', async (socket, context, signal) => {
  const asked = context.now();
  const { serverTime } = await probe('GET', { socket, path: '/_ping' }, signal);
  const answered = context.now();
  if (serverTime === undefined) return [];
  // Read at some time between the two, and truncated to a second.
  const behind = asked - serverTime - 1_000;
  const ahead = serverTime - answered;
  const skew = Math.max(behind, ahead, 0);
  if (skew <= TOLERANCE) return [passed('The clock of the engine agrees with that of this computer.')];
  const direction = ahead > behind ? 'ahead of' : 'behind';
  return [
    failed(`The clock of the engine is ${Math.round(skew / 1000)} s ${direction} that of this computer.`, [
      { description: 'Restart the backend: `rdctl shutdown`, then `rdctl start`.' },
    ]),
  ];
});
