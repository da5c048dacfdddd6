import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { listenHttp } from '../../../src/kit/listen.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { Transport } from '../../../src/kube/transport.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

describe('warnings of the API server', () => {
  it('are read as UTF-8', async () => {
    const text = 'group \\"équipe\\" … and \\"others\\"';
    const server = createServer((_request, response) => {
      response.setHeader('warning', Buffer.from(`299 - "${text}"`).toString('latin1'));
      response.setHeader('content-type', 'application/json');
      // With a text as the body, Node would write the headers in UTF-8, too.
      response.end(Buffer.from('{}'));
    });
    const { port, close } = await listenHttp(server, '127.0.0.1', 0);
    const url = `http://127.0.0.1:${port}`;
    const warnings: string[] = [];
    const onWarning = (warning: string): void => void warnings.push(warning);
    const transport = new Transport(staticCredentials({ server: url }), { clock: new SimulatedClock(), onWarning });
    try {
      await transport.request({ method: 'GET', path: '/x' });
      assert.deepEqual(warnings, ['group "équipe" … and "others"']);
    } finally {
      await Promise.all([transport.close(), close()]);
    }
  });
});
