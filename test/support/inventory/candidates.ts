import { tokenReviewAuthenticator } from '../../../examples/inventory/components/sdk/callers.ts';
import { serveComponent } from '../../../examples/inventory/components/sdk/component-server.ts';
import { httpTransports } from '../../../examples/inventory/components/sdk/http-transports.ts';
import { connect } from '../../../examples/inventory/components/sdk/kubernetes.ts';
import { createAuthority, issue } from '../../../sandbox/pki.ts';
import { HttpComponentClient } from '../../../src/inventory/http/http-component-client.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { player } from './components/player.ts';
import { type ComponentSettings, type RunningComponent, startPython, startShell } from './components/processes.ts';
import type { Candidate } from './conformance.ts';
import { type ConformanceWorld, callers, component, reviewToken, serverAccount } from './conformance-world.ts';
import type { Address } from './plain-client.ts';
import { registrationOf } from './registrations.ts';

const clock = systemClock;

const settingsOf = ({ apiUrl, callbackUrl }: ConformanceWorld): ComponentSettings => ({
  component,
  apiUrl,
  callbackUrl,
  serverAccount,
  reviewToken,
});

/** Calls the component with the server's own client. */
function overHttp(address: Address, close: () => Promise<void>): Candidate {
  const client = new HttpComponentClient({
    tokens: { forCall: () => Promise.resolve(callers.server) },
    clock,
    allowLoopbackHttp: true,
  });
  const { url, ca } = address;
  const registration = registrationOf(component, { endpoint: { url }, caBundle: ca, timeoutMs: 30_000 });
  return {
    address,
    invoke: (request) => client.invoke(registration, request, new AbortController().signal),
    close: async () => {
      client.close();
      await close();
    },
  };
}

const running = ({ url, close }: RunningComponent): Candidate => overHttp({ url }, close);

export const pythonCandidate = async (world: ConformanceWorld): Promise<Candidate> =>
  running(await startPython(settingsOf(world)));

export const shellCandidate = async (world: ConformanceWorld): Promise<Candidate> =>
  running(await startShell(settingsOf(world)));

/** Uses a certificate that only the CA of its registration signed. */
export async function typescriptCandidate({ apiUrl, callbackUrl }: ConformanceWorld): Promise<Candidate> {
  const addresses = { apiUrl, apiCa: undefined, callbackUrl };
  const transports = httpTransports({ ...addresses, callbackCa: undefined });
  const client = connect({ server: apiUrl, tls: {}, token: () => reviewToken });
  const authority = createAuthority('of the registration');
  const identity = issue(authority, { commonName: component, serves: ['127.0.0.1'] });
  const server = await serveComponent({
    component: player(component),
    callers: tokenReviewAuthenticator({ client, component, serverAccount }),
    addresses,
    transports,
    tls: { cert: identity.certificate, key: identity.key },
    host: '127.0.0.1',
    port: 0,
    clock,
    log: () => undefined,
  });
  return overHttp({ url: `https://127.0.0.1:${server.port}`, ca: authority.certificate }, () => server.close());
}
