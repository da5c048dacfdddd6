import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createResolve, type Lookup, lookupByDns } from '../../../../src/notify/destination.ts';

const notAllowed = { code: 'AddressNotAllowed' };
const noLookup: Lookup = () => assert.fail('an address needs no resolution');

describe('the addresses that a sink may have', () => {
  const refused = {
    loopback: ['127.0.0.1', '127.255.0.1', '::1'],
    'this host': ['0.0.0.0', '0.1.2.3', '::'],
    'link-local, with the metadata of clouds': ['169.254.169.254', '169.254.0.1', 'fe80::1', 'febf::1', 'fe80::1%lo'],
    private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fdff::1', 'fd00:ec2::254'],
    'of carriers': ['100.64.0.1', '100.100.100.200', '100.127.255.255'],
    'the metadata of Azure': ['168.63.129.16'],
    multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
    reserved: ['240.0.0.1', '255.255.255.255', '192.0.0.192', '4000::1', '5f00::1', '100::1'],
    benchmarks: ['198.18.0.1'],
    'IPv4 mapped, compatible, or translated': ['::ffff:8.8.8.8', '::ffff:7f00:1', '::8.8.8.8', '::ffff:0:8.8.8.8'],
    NAT64: ['64:ff9b::7f00:1', '64:ff9b::808:808', '64:ff9b:1::a00:1'],
    '6to4': ['2002:7f00:1::1'],
    'Teredo and other protocols': ['2001::1', '2001:0:7f00:1::', '2001:20::1'],
    'site-local': ['fec0::1', 'feff::1'],
  } satisfies Record<string, readonly string[]>;
  for (const [what, addresses] of Object.entries(refused)) {
    it(`are not ${what}`, async () => {
      for (const address of addresses) {
        await assert.rejects(createResolve([], noLookup)(address), notAllowed, address);
        const family = address.includes(':') ? 6 : 4;
        await assert.rejects(createResolve([], async () => [{ address, family }])('sink.test'), notAllowed, address);
      }
    });
  }

  it('are public', async () => {
    for (const address of ['1.1.1.1', '172.32.0.1', '100.128.0.1', '223.255.255.255', '2606:4700::1', '2a00::1'])
      assert.equal((await createResolve([], noLookup)(address))[0]?.address, address);
  });

  it('are those that an administrator lists', async () => {
    const resolve = createResolve(['10.1.0.0/16', 'fd00:1::/32'], noLookup);
    assert.equal((await resolve('10.1.2.3'))[0]?.address, '10.1.2.3');
    assert.equal((await resolve('fd00:1::5'))[0]?.address, 'fd00:1::5');
    for (const address of ['10.2.0.1', 'fd00:2::1', '::ffff:10.1.2.3', '64:ff9b::a01:203'])
      await assert.rejects(resolve(address), notAllowed, address);
  });

  it('do not become all those of IPv4 by a list with all of IPv6', async () => {
    await assert.rejects(createResolve(['::/0'], noLookup)('10.0.0.1'), notAllowed);
  });

  it('are the allowed ones of a name that also has others', async () => {
    const resolve = createResolve([], async () => [
      { address: '10.0.0.1', family: 4 },
      { address: '1.1.1.1', family: 4 },
      { address: '::1', family: 6 },
    ]);
    assert.deepEqual(await resolve('sink.test'), [{ address: '1.1.1.1', family: 4 }]);
  });

  it('stay unknown to who asks for a name with internal ones', async () => {
    const resolve = createResolve([], async () => [{ address: '10.20.30.40', family: 4 }]);
    await assert.rejects(resolve('db.internal'), (error: Error) => !error.message.includes('10.20'));
  });

  it('may be written in other forms, which are judged by their meaning', async () => {
    const hosts = ['2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '127.1', '127.0.0.1.', '①②⑦.0.0.1'];
    for (const host of hosts)
      await assert.rejects(createResolve([], noLookup)(new URL(`https://${host}`).hostname), notAllowed, host);
  });

  it('are names for DNS in an URL that the parser does not normalize', async () => {
    const refusing = async (name: string): Promise<never> => {
      throw new Error(`no address of ${name}`);
    };
    for (const host of ['2130706433', '0x7f.1', '0177.0.0.1', '127.1'])
      await assert.rejects(createResolve([], refusing)(new URL(`smtp://${host}`).hostname), /no address of/, host);
  });
});

describe('the resolution of the names of sinks', () => {
  it('is not delayed by names that are never answered', async () => {
    const server = createSocket('udp4');
    server.on('message', (query, { port, address }) => {
      if (query.includes('quick')) server.send(answerTo(query), port, address);
    });
    server.bind(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const lookup = lookupByDns([`127.0.0.1:${server.address().port}`]);
      let isSlowOver = false;
      const slow = Array.from({ length: 50 }, async () => {
        await assert.rejects(lookup('slow.test'), { code: 'ETIMEOUT' });
        isSlowOver = true;
      });
      assert.deepEqual(await lookup('quick.test'), [{ address: '127.0.0.9', family: 4 }]);
      assert.ok(!isSlowOver);
      await Promise.all(slow);
    } finally {
      server.close();
    }
  }).timeout(60_000);

  it('of localhost is loopback, whatever DNS says', async () => {
    assert.deepEqual(await lookupByDns(['127.0.0.1:1'])('localhost'), [{ address: '127.0.0.1', family: 4 }]);
  });
});

/** Of RFC 1035: to a question for A the address 127.0.0.9, to others none. */
function answerTo(query: Buffer): Buffer {
  const question = query.subarray(12, query.indexOf(0, 12) + 5);
  const isIpv4 = question.readUInt16BE(question.length - 4) === 1;
  const header = Buffer.from([query[0] ?? 0, query[1] ?? 0, 0x81, 0x80, 0, 1, 0, isIpv4 ? 1 : 0, 0, 0, 0, 0]);
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 9]);
  return Buffer.concat([header, question, ...(isIpv4 ? [record] : [])]);
}
