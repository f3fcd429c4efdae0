// The reference of the benches of memory and attacks: fastify with routes that do nothing but take and answer as many bytes as ours.
import fastify from 'fastify';

const readers = new Set();
const app = fastify({ bodyLimit: 4 * 1024 * 1024 });
app.get('/', () => '');
app.post('/', (request) => `${JSON.stringify(request.body, null, 2)}\n`);
// A stream that stays open.
app.get('/events', (_request, reply) => {
  reply.hijack();
  reply.raw.writeHead(200).write('\n');
  readers.add(reply.raw);
  reply.raw.once('close', () => readers.delete(reply.raw));
});
// A change, which each reader is told of.
app.put('/', (request) => {
  const event = `data: ${JSON.stringify(request.body)}\n\n`;
  for (const reader of readers) reader.write(event);
  return '';
});
await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.(app.server.address().port);
