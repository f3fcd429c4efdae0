import type { FastifyInstance } from 'fastify';
import type { ServiceMetrics } from '../../service/metrics.ts';
import { withDoc } from '../route-doc.ts';

/** The media type of the Prometheus text format. */
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Routes whose responses last until the reader leaves, so their duration is not measured. */
const STREAMS: readonly string[] = ['/v2/events'];

/** The port of the metrics route and of the request measurement. */
export interface MetricsPort {
  metrics: Pick<ServiceMetrics, 'request' | 'text'>;
}

/** Measures every request. Labels are route patterns, never text that a client sends. */
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

/** Registers `GET /v2/metrics`, in the Prometheus text format. */
export function metricsRoutes(app: FastifyInstance, { metrics }: MetricsPort): void {
  const doc = withDoc({
    scope: 'read',
    summary: 'Get counters and measurements in the text format of Prometheus',
    description: 'docs/metrics.md lists them.',
    replies: { 200: { description: 'always', body: 'text', type: METRICS_TYPE } },
  });
  app.get('/v2/metrics', doc, async (_request, reply) => reply.type(METRICS_TYPE).send(await metrics.text()));
}
