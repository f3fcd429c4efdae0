/**
 * Every product name in one place (design: "Identity and targets"). Ours name our files; the compatible application's
 * names are wire facts that scripts and policy readers match on.
 */
export const PRODUCT = {
  /** Directory name, service name and command of this product. */
  name: 'rdctl',
  /** Release; a test holds it equal to that in `package.json`. */
  version: '0.1.0',
  /** Connection file in our data directory. */
  connectionFile: 'app-engine.json',
  /** First port that the service tries. */
  defaultPort: 6107,
  /** Version of the API that `rdctl version` reports as its target. */
  apiVersion: 'v1',
} as const;

/** The application whose interfaces we are compatible with. */
export const COMPATIBLE = {
  /** Product name in wire texts, registry paths and dialog titles. */
  productName: 'Rancher Desktop',
  /** Directory name below the per-user data and configuration directories. */
  directory: 'rancher-desktop',
  /** Its connection file. */
  connectionFile: 'rd-engine.json',
  /** Value of `--target` that names it. */
  target: 'rancher-desktop',
  /** Deployment profile directory on Linux. */
  policyDirectory: '/etc/rancher-desktop',
} as const;

/** Drivers that can be asked for by name; a test holds this equal to the list of drivers. */
export const DRIVER_NAMES = ['simulated', 'host'] as const;
