import type { FastifyInstance } from 'fastify';
import type { RouteDoc } from './route-doc.ts';

/** A route with what it says about itself; `doc` is absent where somebody forgot, which a test notices. */
export interface DescribedRoute {
  /** Upper case. */
  method: string;
  path: string;
  doc?: RouteDoc;
}

/**
 * Collects the routes that are registered from here on, in that order. `HEAD` is left out: it comes with every `GET`. The list
 * grows until the app is ready.
 */
export function describedRoutes(app: FastifyInstance): readonly DescribedRoute[] {
  const routes: DescribedRoute[] = [];
  app.addHook('onRoute', ({ method, url, config }) => {
    const doc = config?.doc;
    for (const name of [method].flat()) {
      if (name !== 'HEAD') routes.push({ method: name, path: url, ...(doc === undefined ? {} : { doc }) });
    }
  });
  return routes;
}
