import type { Row } from '../row.ts';

const shutdown = (request: string, fact: string): Row => ({
  request,
  fact,
  status: 202,
  type: 'text',
  reply: 'Shutting down.',
  after: ({ service }) => service.stopped,
});

export const shutdownRows: readonly Row[] = [
  shutdown('PUT /v1/shutdown', 'seed: shutdown; api 15.4'),
  { ...shutdown('PUT /v1/shutdown', 'api 8: a body is ignored'), when: 'with a body', body: '{', loose: true },
  shutdown('PUT /v0/shutdown', 'seed: older API revision'),
];
