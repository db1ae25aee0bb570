using System;
using System.Collections.Generic;
using System.IO;
using System.Net;
using System.Net.Sockets;
using System.Text;
using System.Threading;
using NUnit.Framework;

namespace Eyestream.Tests
{
    /// <summary>A link and a broker of a few lines, which may be hostile.</summary>
    [TestFixture]
    public sealed class LinkTests
    {
        const string Status = "eyestream/v1/hmd-1/features/status";
        static readonly byte[] Accepted = { 0x20, 2, 0, 0 }, Granted = { 0x90, 6, 0, 1, 1, 1, 1, 1 };

        /// <summary>Each connection is given to `serve`, until the feed says what is waited for.</summary>
        static void With(Action<NetworkStream> serve, Func<Feed, List<Fault>, bool> until, BrokerPlace place = null)
        {
            var listener = new TcpListener(IPAddress.Loopback, 0);
            listener.Start();
            var broker = new Thread(() =>
            {
                try
                {
                    while (true)
                        using (var peer = listener.AcceptTcpClient())
                            try { serve(peer.GetStream()); }
                            catch (IOException) { }
                }
                catch (SocketException) { }
                catch (ObjectDisposedException) { }
                catch (InvalidOperationException) { }
            }) { IsBackground = true };
            broker.Start();
            place = place ?? new BrokerPlace();
            place.Host = "127.0.0.1";
            place.Port = ((IPEndPoint)listener.LocalEndpoint).Port;
            using (var feed = new Feed(place, "hmd-1", "features", ""))
            {
                var faults = new List<Fault>();
                feed.OnFault += faults.Add;
                bool came = false;
                for (int i = 0; i < 1000 && !came; i++)
                {
                    Thread.Sleep(10);
                    feed.Pump();
                    came = until(feed, faults);
                }
                listener.Stop();
                Assert.IsTrue(came, feed.Status + "; " + string.Join("; ", faults.ConvertAll(fault => fault.ToString()).ToArray()));
            }
        }

        /// <summary>One packet from the client, without its first byte and its length.</summary>
        static byte[] Hear(Stream stream, out byte head)
        {
            return MqttPackets.Read(count =>
            {
                var found = new byte[count];
                for (int at = 0; at < count;)
                {
                    int more = stream.Read(found, at, count - at);
                    if (more == 0) throw new IOException("gone");
                    at += more;
                }
                return found;
            }, 4096, out head);
        }

        static void Say(Stream stream, params byte[] packet) { stream.Write(packet, 0, packet.Length); }

        static void Subscribed(Stream stream)
        {
            byte head;
            Hear(stream, out head);
            Say(stream, Accepted);
            Hear(stream, out head);
            Say(stream, Granted);
        }

        static byte[] Message(string topic, byte[] payload, int qos)
        {
            var packet = new MemoryStream();
            byte[] name = Encoding.UTF8.GetBytes(topic);
            packet.WriteByte((byte)(0x30 | qos << 1));
            packet.WriteByte((byte)(2 + name.Length + 2 * qos + payload.Length)); // below 128 here
            packet.WriteByte(0);
            packet.WriteByte((byte)name.Length);
            packet.Write(name, 0, name.Length);
            if (qos > 0) packet.Write(new byte[] { 3, 7 }, 0, 2);
            packet.Write(payload, 0, payload.Length);
            return packet.ToArray();
        }

        static bool Said(List<Fault> faults, FaultKind kind, string words)
        {
            return faults.Exists(fault => fault.Kind == kind && fault.Message.Contains(words));
        }

        [Test]
        public void AMessageAtQos1IsAcknowledgedAndLinksComeBack()
        {
            int acknowledged = 0;
            With(stream =>
            {
                byte head;
                Subscribed(stream);
                Say(stream, Message(Status, PayloadTests.Bytes("status"), 1));
                byte[] number = Hear(stream, out head);
                if (head == 0x40 && number.Length == 2 && number[0] == 3 && number[1] == 7) acknowledged++;
            }, (feed, faults) => acknowledged >= 3 && feed.Status.State != StreamState.Waiting);
        }

        [Test]
        public void PingsAreSentAndABrokerThatIsSilentIsGone()
        {
            int pings = 0;
            With(stream =>
            {
                byte head;
                Subscribed(stream);
                while (true)
                {
                    Hear(stream, out head);
                    if (head == 0xC0) pings++;
                    if (pings < 3) Say(stream, 0xD0, 0);
                }
            }, (feed, faults) => pings >= 3 && feed.Status.State == StreamState.NotLinked && Said(faults, FaultKind.Network, "is silent"),
                new BrokerPlace { KeepAliveSeconds = 1 });
        }

        [Test]
        public void ABrokerThatNeverAnswersIsGivenUp([Values(false, true)] bool tls)
        {
            With(stream => Thread.Sleep(3000), (feed, faults) => Said(faults, FaultKind.Network, "is silent"),
                new BrokerPlace { TimeoutSeconds = 1, Tls = tls });
        }

        [Test]
        public void RefusalsOfTheBrokerAreNamed()
        {
            byte head;
            With(stream =>
            {
                Hear(stream, out head);
                Say(stream, 0x20, 2, 0, 5);
            }, (feed, faults) => Said(faults, FaultKind.Login, "'application'"), new BrokerPlace { User = "application", Password = "x" });
            With(stream =>
            {
                Hear(stream, out head);
                Say(stream, 0x20, 2, 0, 1);
            }, (feed, faults) => Said(faults, FaultKind.Protocol, "3.1.1"));
            With(stream =>
            {
                Hear(stream, out head);
                Say(stream, Accepted);
                Hear(stream, out head);
                Say(stream, 0x90, 6, 0, 1, 0x80, 1, 1, 1);
                Hear(stream, out head);
            }, (feed, faults) => Said(faults, FaultKind.Rights, "/budget") && feed.Status.State == StreamState.Waiting);
        }

        static readonly byte[][] Hostile =
        {
            Encoding.ASCII.GetBytes("HTTP/1.1 400 Bad Request\r\n" + new string('x', 90)),
            new byte[] { 0x30, 0xff, 0xff, 0xff, 0x7f }, // 256 MiB
            new byte[] { 0x30, 0xff, 0xff, 0xff, 0xff, 1 },
            new byte[] { 0x30, 1, 0 }, new byte[] { 0x30, 3, 0, 9, 65 }, new byte[] { 0x32, 3, 0, 1, 65 },
            new byte[] { 0x34, 5, 0, 1, 65, 0, 1 }, new byte[] { 0x36, 5, 0, 1, 65, 0, 1 }, new byte[] { 0x30, 3, 0, 1, 0xff },
            new byte[] { 0x10, 0 }, new byte[] { 0, 0 }, new byte[] { 0xf0, 0 },
        };

        [Test]
        public void WhatIsNoPacketEndsTheLinkAndNothingElse([Range(0, 11)] int number)
        {
            With(stream =>
            {
                Subscribed(stream);
                Say(stream, Hostile[number]);
                Thread.Sleep(200);
            }, (feed, faults) => faults.Exists(fault => fault.Kind == FaultKind.Protocol));
        }

        [Test]
        public void PacketsOfRandomBytesEndTheLinkOrAreRead()
        {
            var random = new Random(41);
            for (int turn = 0; turn < 50000; turn++)
            {
                var bytes = new byte[random.Next(24)];
                random.NextBytes(bytes);
                int at = 0;
                byte head;
                try
                {
                    byte[] body = MqttPackets.Read(count =>
                    {
                        if (count > bytes.Length - at) throw new IOException("the end");
                        var part = new byte[count];
                        Array.Copy(bytes, at, part, 0, count);
                        at += count;
                        return part;
                    }, 4096, out head);
                    string topic;
                    byte[] payload;
                    int packet;
                    MqttPackets.Parse(head, body, out topic, out payload, out packet);
                    Assert.LessOrEqual(topic.Length + payload.Length, body.Length);
                }
                catch (Refused) { }
                catch (IOException) { }
            }
        }
    }
}
