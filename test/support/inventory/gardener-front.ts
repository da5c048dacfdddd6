import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request as httpsRequest, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { shoots } from '../../../examples/inventory/components/cluster.ts';
import { issue } from '../../../sandbox/pki.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { SimulatedCloud } from './cloud.ts';

const subresource = /\/shoots\/[^/]+\/adminkubeconfig$/;

/** In front of the API server of a plane: adds Gardener's subresource, which a CRD cannot define. */
export class GardenerFront {
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start({ server: target, authority }: Plane, cloud: SimulatedCloud): Promise<GardenerFront> {
    const { certificate, key } = issue(authority, { commonName: 'front', serves: ['127.0.0.1'] });
    const server = createServer({ cert: certificate, key }, (request, response) => {
      if (subresource.test(request.url ?? '')) return void adminKubeconfig(cloud, request, response);
      const { method, headers } = request;
      const options = { method, headers, ca: authority.certificate, agent: false } as const;
      const passed = httpsRequest(`${target}${request.url}`, options, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      passed.on('error', () => response.destroy());
      request.pipe(passed);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new GardenerFront(server);
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

async function adminKubeconfig(cloud: SimulatedCloud, request: IncomingMessage, response: ServerResponse) {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += String(chunk);
  const answer = (status: number, body: object): void =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  try {
    answer(201, await cloud.client.create(shoots, JSON.parse(text) as KubeObject, { subresource: 'adminkubeconfig' }));
  } catch (error) {
    const code = error instanceof ApiError ? error.code : 500;
    answer(code, { kind: 'Status', apiVersion: 'v1', metadata: {}, code, message: String(error) });
  }
}
