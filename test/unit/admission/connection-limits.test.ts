import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:https';
import { Socket } from 'node:net';
import { limitConnections } from '../../../src/admission/connection-limits.ts';
import { FairQueue } from '../../../src/admission/fair-queue.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

/** A connection as the listener gets it. */
class AcceptedSocket extends Socket {
  constructor(override readonly remoteAddress: string | undefined) {
    super();
  }
}

describe('the slots of connections', () => {
  let server: Server;
  let sockets: Socket[];
  let rejected: number;
  const accept = (address: string | undefined): Socket => {
    const socket = new AcceptedSocket(address);
    sockets.push(socket);
    server.emit('connection', socket);
    return socket;
  };
  const open = (): number => sockets.filter((socket) => !socket.destroyed).length;

  beforeEach(() => {
    server = createServer();
    sockets = [];
    rejected = 0;
    limitConnections(server, { queue: new FairQueue({ clock: new SimulatedClock() }), onRejected: () => rejected++ });
    for (let index = 0; index < 1_024; index++) accept(`10.0.0.${index % 3}`);
    assert.equal(open(), 1_024);
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
  });

  it('go to an address with few connections, which replaces the oldest of the address with the most', () => {
    const modest = accept('10.0.0.9');
    assert.equal(modest.destroyed, false);
    assert.deepEqual([sockets[0]?.destroyed, open(), rejected], [true, 1_024, 0]);
  });

  it('do not go to an address with as many as the others, and nothing is evicted for it', () => {
    const greedy = accept('10.0.0.1');
    assert.deepEqual([greedy.destroyed, open(), rejected], [true, 1_024, 1]);
  });

  it('do not go to a connection that its client has closed already, and nothing is evicted for it', () => {
    const closed = accept(undefined);
    assert.deepEqual([closed.destroyed, open(), rejected], [true, 1_024, 0]);
  });
});
