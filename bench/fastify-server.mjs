// The reference of the memory bench: fastify with one empty route.
import fastify from 'fastify';

const app = fastify();
app.get('/', () => '');
await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.('ready');
