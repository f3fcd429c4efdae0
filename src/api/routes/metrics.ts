import type { FastifyInstance } from 'fastify';
import type { ServiceMetrics } from '../../service/metrics.ts';
import { withDoc } from '../route-doc.ts';

/** The text format of Prometheus. */
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Answers there end with the reader, not with the work. */
const STREAMS: readonly string[] = ['/v2/events'];

/** The port of the metrics route, and of the measurement of requests. */
export interface MetricsPort {
  metrics: Pick<ServiceMetrics, 'request' | 'text'>;
}

/** Measures every request. Labels are those of routes, never what a client sends. */
export function measureRequests(app: FastifyInstance, { metrics }: MetricsPort): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { url } = request.routeOptions;
    const route = url ?? 'other';
    if (!STREAMS.includes(route)) {
      const method = url === undefined ? 'other' : request.method;
      metrics.request({ method, route, status: String(reply.statusCode) }, reply.elapsedTime);
    }
    done();
  });
}

/** `GET /v2/metrics`: for Prometheus. */
export function metricsRoutes(app: FastifyInstance, { metrics }: MetricsPort): void {
  const doc = withDoc({
    scope: 'read',
    summary: 'Get counters and measurements in the text format of Prometheus',
    description: 'docs/metrics.md lists them.',
    replies: { 200: { description: 'always', body: 'text', type: METRICS_TYPE } },
  });
  app.get('/v2/metrics', doc, async (_request, reply) => reply.type(METRICS_TYPE).send(await metrics.text()));
}
