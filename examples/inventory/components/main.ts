/**
 * Serves one of the reference components: `COMPONENT=network node main.ts`. README.md lists the
 * settings in the environment.
 */
import { readFileSync } from 'node:fs';
import { referenceComponents } from './reference-components.ts';
import { tokenReviewAuthenticator } from './sdk/callers.ts';
import { systemClock as clock } from './sdk/clock.ts';
import { serveComponent } from './sdk/component-server.ts';
import type { Component } from './sdk/contract.ts';
import { ownCredentials } from './sdk/credentials.ts';
import { httpTransports } from './sdk/http-transports.ts';
import { connect } from './sdk/kubernetes.ts';

const { env } = process;

function required(name: string): string {
  const value = env[name];
  if (value) return value;
  throw new Error(`${name} is not set; README.md lists the settings`);
}

const fileOf = (name: string): string | undefined => (env[name] ? readFileSync(env[name], 'utf8') : undefined);

async function main(): Promise<void> {
  const credentials = ownCredentials(env['KUBECONFIG']);
  const management = connect(credentials);
  const components = referenceComponents({ management, connect, clock });
  const component = components.get(required('COMPONENT'));
  if (!component) throw new Error(`COMPONENT is none of ${[...components.keys()].join(', ')}`);
  const { name } = component;
  const [cert, key] = [fileOf('TLS_CERT_FILE'), fileOf('TLS_KEY_FILE')];
  if (!cert !== !key) throw new Error('only one of TLS_CERT_FILE and TLS_KEY_FILE is set; set both, or neither');
  const tls = cert && key ? { cert, key } : undefined;
  const addresses = {
    apiUrl: env['API_URL'] ?? credentials.server,
    apiCa: fileOf('API_CA_FILE') ?? credentials.tls.ca,
    callbackUrl: required('CALLBACK_URL'),
  };
  const server = await serveComponent({
    component: logged(component),
    callers: tokenReviewAuthenticator({
      client: management,
      component: name,
      serverAccount: env['SERVER_ACCOUNT'] ?? 'system:serviceaccount:drawbridge-system:drawbridge-inventory',
    }),
    addresses,
    transports: httpTransports({ ...addresses, callbackCa: fileOf('CALLBACK_CA_FILE') }),
    tls,
    // Without TLS, tokens must not leave this machine.
    host: tls ? '0.0.0.0' : '127.0.0.1',
    port: Number(env['PORT'] ?? 8443),
    clock,
    log: (line) => console.log(line),
  });
  console.log(`${name} listens on port ${server.port}`);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void server.close());
}

/** Prints the ID of each run, which begins with the UID of the entry, and its outcome. */
function logged({ name, reconcile }: Component): Component {
  return {
    name,
    reconcile: async (run) => {
      const { id } = run.request.run;
      console.log(`run ${id}: ${run.request.operation}`);
      const outcome = await reconcile(run);
      console.log(`run ${id}: ${outcome.outcome}${outcome.message ? `, ${outcome.message}` : ''}`);
      return outcome;
    },
  };
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
