import assert from 'node:assert/strict';
import { createResolve, type Lookup } from '../../../../src/notify/destination.ts';

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
    'documentation and benchmarks': [
      '192.0.2.1',
      '198.51.100.1',
      '203.0.113.1',
      '198.18.0.1',
      '2001:db8::1',
      '3fff::1',
    ],
    'IPv4 mapped, compatible, or translated': ['::ffff:8.8.8.8', '::ffff:7f00:1', '::8.8.8.8', '::ffff:0:8.8.8.8'],
    NAT64: ['64:ff9b::7f00:1', '64:ff9b::808:808', '64:ff9b:1::a00:1'],
    '6to4 and its relays': ['2002:7f00:1::1', '192.88.99.1'],
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

  it('may be written in other forms in an URL that the parser does not normalize', async () => {
    for (const host of ['2130706433', '0x7f.1', '0177.0.0.1', '127.1'])
      await assert.rejects(createResolve([])(new URL(`smtp://${host}`).hostname), notAllowed, host);
  });
});
