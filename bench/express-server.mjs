// The reference of the throughput bench: express, res.json, the same check of the same header.
import { timingSafeEqual } from 'node:crypto';
import express from 'express';

const expected = Buffer.from(process.env.AUTHORIZATION ?? '');
process.once('message', ({ settings }) => {
  const app = express();
  app.set('etag', false);
  app.use((request, response, next) => {
    const given = Buffer.from(request.headers.authorization ?? '');
    if (given.length === expected.length && timingSafeEqual(given, expected)) next();
    else response.status(401).send('Unauthorized');
  });
  app.get('/v1/settings', (_request, response) => response.json(settings));
  const server = app.listen(0, '127.0.0.1', () => process.send?.(server.address().port));
});
