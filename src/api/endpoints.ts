/** An endpoint of the compatible interface. */
export interface Endpoint {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Without the version prefix: `settings/locked`. */
  name: string;
  /** 0: the same path below `/v0` is answered with the way to the newer one; 1: it is unknown there (api facts, 6.3). */
  since: 0 | 1;
}

/** All endpoints of version 1, in the order in which listings show them (api facts, 6.2). */
export const ENDPOINTS: readonly Endpoint[] = [
  { method: 'GET', name: 'about', since: 1 },
  { method: 'GET', name: 'backend_state', since: 1 },
  { method: 'PUT', name: 'backend_state', since: 1 },
  { method: 'GET', name: 'diagnostic_categories', since: 0 },
  { method: 'GET', name: 'diagnostic_checks', since: 0 },
  { method: 'POST', name: 'diagnostic_checks', since: 0 },
  { method: 'GET', name: 'diagnostic_ids', since: 0 },
  { method: 'GET', name: 'extensions', since: 1 },
  { method: 'POST', name: 'extensions/install', since: 1 },
  { method: 'POST', name: 'extensions/uninstall', since: 1 },
  { method: 'PUT', name: 'factory_reset', since: 0 },
  { method: 'PUT', name: 'k8s_reset', since: 0 },
  { method: 'DELETE', name: 'port_forwarding', since: 1 },
  { method: 'POST', name: 'port_forwarding', since: 1 },
  { method: 'PUT', name: 'propose_settings', since: 0 },
  { method: 'GET', name: 'settings', since: 0 },
  { method: 'PUT', name: 'settings', since: 0 },
  { method: 'GET', name: 'settings/locked', since: 0 },
  { method: 'PUT', name: 'shutdown', since: 0 },
  { method: 'POST', name: 'snapshot/restore', since: 0 },
  { method: 'GET', name: 'snapshots', since: 0 },
  { method: 'DELETE', name: 'snapshots', since: 0 },
  { method: 'POST', name: 'snapshots', since: 0 },
  { method: 'POST', name: 'snapshots/cancel', since: 0 },
  { method: 'GET', name: 'transient_settings', since: 0 },
  { method: 'PUT', name: 'transient_settings', since: 0 },
];
