import { expect, test } from 'vitest';
import { createEventRing } from '../../src/events/event-ring.ts';

test('an event has the beginning of a large value, and a small one whole', () => {
  const ring = createEventRing({ run: '0123abcd', dropped: 0, most: { events: 10, characters: 1_000_000 } });
  const change = { path: 'containerEngine.allowedImages.patterns', action: 'update', before: 'a' } as const;
  const after = Array.from({ length: 100_000 }, (_, at) => `registry.example/${at}`);
  ring.add({ type: 'change', change: { generation: 1, by: { how: 'set' }, changes: [{ ...change, after }] } }, 'now');
  const held = ring.next({ after: 0, seen: 0 });
  if (held === undefined || held === 'lost') throw new Error('the event is not held');
  expect(held.text.length).toBeLessThan(1_000);
  const [shown] = JSON.parse(held.text).change.changes;
  expect(shown.before).toBe('a');
  expect(shown.after).toMatch(/^\["registry\.example\/0",.*… \(\d{7} characters; the history has all\)$/);
});
