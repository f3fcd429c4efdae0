import type { FastifyInstance } from 'fastify';
import type { RouteDoc } from './route-doc.ts';

/** A route with what it says about itself. */
export interface DescribedRoute {
  /** Upper case. */
  method: string;
  path: string;
  doc: RouteDoc;
}

/**
 * Collects the routes that are registered from here on, in that order. `HEAD` is left out: it comes with every `GET`. The list
 * grows until the app is ready.
 * @throws Error, at the registration, for a route that does not describe itself.
 */
export function describedRoutes(app: FastifyInstance): readonly DescribedRoute[] {
  const routes: DescribedRoute[] = [];
  app.addHook('onRoute', ({ method, url, config }) => {
    const doc = config?.doc;
    if (doc === undefined) throw new Error(`the route ${[method].flat().join()} ${url} is not documented`);
    for (const name of [method].flat()) if (name !== 'HEAD') routes.push({ method: name, path: url, doc });
  });
  return routes;
}
