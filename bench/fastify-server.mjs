// The reference of the benches of memory and attacks: fastify with empty routes.
import fastify from 'fastify';

const app = fastify({ bodyLimit: 4 * 1024 * 1024 });
app.get('/', () => '');
app.post('/', () => '');
// A stream that stays open.
app.get('/events', (_request, reply) => {
  reply.hijack();
  reply.raw.writeHead(200).write('\n');
});
await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.(app.server.address().port);
