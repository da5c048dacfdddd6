/**
 * Which folder of `src/` may import which folders and files of `src/`, besides itself, lowest first: docs/architecture/layers.md.
 * Lint refuses every other import. `make manifests` writes the rules to `lint/layers.json`, which biome.json extends.
 */
export const layers: Readonly<Record<string, readonly string[]>> = {
  kit: [],
  api: ['kit'],
  audit: ['kit'],
  observe: ['kit'],
  engine: ['kit', 'observe'],
  kube: ['kit', 'api', 'engine'],
  rbac: ['kit', 'api', 'kube', 'engine', 'audit'],
  access: ['kit', 'api', 'kube', 'engine', 'audit', 'observe', 'rbac'],
  binding: ['kit', 'api', 'kube', 'engine', 'audit', 'observe'],
  inventory: ['kit', 'api', 'kube', 'engine', 'audit', 'observe', 'rbac'],
  // Pure: what decides has no effects.
  'inventory/core': ['kit', 'api', 'inventory/entry.ts', 'inventory/registration.ts', 'inventory/policy'],
  'inventory/policy': ['kit', 'api'],
  gateway: ['kit', 'api', 'kube', 'engine', 'audit', 'observe', 'rbac', 'access/stores/access-views.ts'],
  notify: ['kit', 'api', 'kube', 'engine', 'observe', 'access/stores/access-views.ts'],
  certificates: ['kit', 'api', 'kube', 'engine', 'observe'],
  admission: ['kit', 'api', 'audit', 'observe', 'access/policy', 'inventory/policy'],
  cli: ['kit', 'api', 'kube', 'audit', 'access/policy'],
  client: ['kit', 'api', 'kube', 'audit', 'rbac', 'access/policy', 'cli', '../package.json'],
  features: [
    'kit',
    'api',
    'audit',
    'observe',
    'engine',
    'kube',
    'rbac',
    'access',
    'binding',
    'inventory',
    'gateway',
    'notify',
    'certificates',
    'admission',
    'config.ts',
    '../package.json',
  ],
};

/** The one folder that may import a package. */
export const packages: Readonly<Record<string, string>> = {
  '@kubernetes/client-node': 'kube',
  undici: 'kube',
  'js-yaml': 'kube',
  '@aws-sdk/client-s3': 'gateway',
  nodemailer: 'notify',
  express: 'admission',
  jsonpatch: 'access',
  re2js: 'access',
  winston: 'observe',
  'winston-transport': 'observe',
  'prom-client': 'observe',
  typebox: 'api',
  preact: 'client',
  'asciinema-player': 'client',
};
