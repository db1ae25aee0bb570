using System;
using System.Collections.Generic;
using System.Threading;
using NUnit.Framework;

namespace Eyestream.Tests
{
    /// <summary>What a feed makes of messages, without a broker.</summary>
    [TestFixture]
    public sealed class FeedTests
    {
        const string Prefix = "eyestream/v1/hmd-1/features/";

        static Feed Made(params string[] described)
        {
            var feed = new Feed(null, "hmd-1", "features", "sidecar-1");
            feed.Linked();
            foreach (string name in described) feed.Message(Prefix + "meta", PayloadTests.Bytes(name), true);
            return feed;
        }

        static List<Chunk> ChunksOf(Feed feed)
        {
            var came = new List<Chunk>();
            feed.OnChunk += came.Add;
            return came;
        }

        static List<StreamState> StatesOf(Feed feed)
        {
            var came = new List<StreamState>();
            feed.OnStatus += status => came.Add(status.State);
            return came;
        }

        static List<Fault> FaultsOf(Feed feed)
        {
            var came = new List<Fault>();
            feed.OnFault += came.Add;
            return came;
        }

        static void Say(Feed feed, string leaf, string golden) { feed.Message(Prefix + leaf, PayloadTests.Bytes(golden), false); }

        [Test]
        public void AChunkComesOnceAndOnlyWhenPumped()
        {
            var feed = Made("meta");
            var came = ChunksOf(feed);
            Say(feed, "private", "private");
            Say(feed, "private", "private");
            Assert.AreEqual(0, came.Count);
            feed.Pump();
            Assert.AreEqual(1, came.Count);
            Assert.AreEqual(1, feed.Repeated);
            Assert.AreEqual(ChunkKind.Features, came[0].Kind);
            Assert.AreEqual(came[0].Values.Length, came[0].Rows * came[0].Description.Names.Length);
        }

        [Test]
        public void EventsComeOnTheThreadThatPumps()
        {
            var feed = Made();
            int thread = -1;
            feed.OnChunk += chunk => thread = Thread.CurrentThread.ManagedThreadId;
            var network = new Thread(() =>
            {
                feed.Message(Prefix + "meta", PayloadTests.Bytes("meta"), true);
                Say(feed, "private", "private");
            });
            network.Start();
            network.Join();
            feed.Pump();
            Assert.AreEqual(Thread.CurrentThread.ManagedThreadId, thread);
        }

        [Test]
        public void AChunkBeforeItsDescriptionWaits()
        {
            var feed = Made();
            var came = ChunksOf(feed);
            Say(feed, "private", "private");
            feed.Pump();
            Assert.AreEqual(0, came.Count);
            Say(feed, "meta", "meta");
            feed.Pump();
            Assert.AreEqual(1, came.Count);
        }

        [Test]
        public void AskedFeaturesHaveNamesAndErrors()
        {
            var feed = Made("meta-asked");
            var came = ChunksOf(feed);
            Say(feed, "private", "private-asked");
            feed.Pump();
            float value, error;
            Assert.IsTrue(came[0].TryGet("mean_mean_diameter", out value, out error));
            Assert.AreEqual(0.25f, value);
            Assert.AreEqual(0.1875f, error);
            Assert.IsFalse(came[0].TryGet("rate_saccades", out value, out error));
            Assert.AreEqual(32.0, feed.Description.SecondsOfChunk);
        }

        [Test]
        public void WordsHaveALikeliestOne()
        {
            var feed = Made("meta-words");
            var came = ChunksOf(feed);
            Say(feed, "private", "private-word");
            feed.Pump();
            Assert.AreEqual(ChunkKind.Words, came[0].Kind);
            Assert.AreEqual("read", came[0].Word(0));
        }

        [Test]
        public void GazeHasAnErrorAndATime()
        {
            var description = new StreamDescription(new Dictionary<string, object>
            {
                { "names", new[] { "gaze_x", "gaze_y", "gaze_error", "lost", "word" } },
                { "units", new[] { "deg", "deg", "deg", "1", "1" } },
                { "noise_sd", new float[5] }, { "rate_hz", 1.0 }, { "n", 1UL }, { "epsilon", 3.3 }, { "delta", 0.0 },
                { "mechanism", "tile" }, { "guarantee", "claim: of a slot" },
            });
            var chunk = new Chunk(description, Payload.Decode("private", PayloadTests.Bytes("private-gaze")), 0);
            Assert.AreEqual(ChunkKind.Gaze, chunk.Kind);
            GazeSample gaze = chunk.Gaze(0);
            Assert.AreEqual(-12.5f, gaze.X);
            Assert.AreEqual(3.25f, gaze.Y);
            Assert.AreEqual(8f, gaze.Error);
            Assert.AreEqual(0.125f, gaze.Lost);
            Assert.AreEqual(1031.5, gaze.Time);
        }

        [Test]
        public void RetainedChunksAndForeignTopicsAreLeftAlone()
        {
            var feed = Made("meta");
            var came = ChunksOf(feed);
            byte[] chunk = PayloadTests.Bytes("private");
            feed.Message(Prefix + "private", chunk, true);
            feed.Message("eyestream/v1/hmd-2/features/private", chunk, false);
            feed.Message(Prefix + "private/more", chunk, false);
            feed.Message("", chunk, false);
            feed.Pump();
            Assert.AreEqual(0, came.Count);
            Assert.AreEqual(0, feed.Refusals);
        }

        [Test]
        public void WhatIsNoPayloadIsAFaultAndIsSaidOnce()
        {
            var feed = Made("meta");
            var faults = FaultsOf(feed);
            for (int i = 0; i < 5; i++) Say(feed, "private", "bad-cut");
            Say(feed, "private", "private-word");
            Say(feed, "private", "private-asked"); // of another shape than the description
            feed.Pump();
            Assert.AreEqual(6, feed.Refusals);
            Assert.AreEqual(2, faults.Count);
            Assert.AreEqual(FaultKind.Payload, faults[0].Kind);
            Assert.IsTrue(faults[0].Message.EndsWith("not_msgpack"), faults[0].Message);
            Assert.IsTrue(faults[1].Message.EndsWith("shape"), faults[1].Message);
        }

        [Test]
        public void TheStatusFollowsFromLinkSidecarAndStream()
        {
            var feed = Made();
            var states = StatesOf(feed);
            Say(feed, "status", "status");
            Say(feed, "status", "status-paused");
            feed.Message("eyestream/v1/sidecar-1/sidecar/status", PayloadTests.Bytes("status-last-will"), false);
            Say(feed, "status", "status"); // what the broker had kept: the sidecar is gone all the same
            feed.Message("eyestream/v1/sidecar-1/sidecar/status", PayloadTests.Bytes("status"), false);
            feed.Unlinked("gone");
            feed.Linked();
            feed.Pump();
            var online = StreamStatus.Of((string)Payload.Decode("status", PayloadTests.Bytes("status"))["state"], "").State;
            Assert.AreEqual(new[] { StreamState.Waiting, online, StreamState.Paused, StreamState.Offline, online,
                StreamState.NotLinked, StreamState.Waiting }, states.ToArray());
            Assert.AreEqual(StreamState.Unknown, StreamStatus.Of("asleep", "why").State);
        }

        [Test]
        public void TheBudgetIsInSecondsOnceTheStreamIsDescribed()
        {
            var feed = Made();
            Assert.IsTrue(double.IsNaN(feed.BudgetSeconds));
            Say(feed, "budget", "budget");
            feed.Pump();
            Assert.AreEqual(96, feed.Budget.Chunks);
            Assert.AreEqual("session", feed.Budget.Ceiling);
            Assert.IsTrue(double.IsNaN(feed.BudgetSeconds));
            Say(feed, "meta", "meta");
            feed.Pump();
            Assert.AreEqual(192.0, feed.BudgetSeconds);
            Assert.IsTrue(feed.Description.Guarantee.StartsWith("epsilon 4.8"));
        }

        [Test]
        public void WhatWaitsIsBoundedAndTheNewestStaysAndStatesStay()
        {
            var feed = Made("meta");
            var came = ChunksOf(feed);
            Say(feed, "budget", "budget");
            byte[] payload = PayloadTests.Bytes("private");
            int at = IndexOfNumber(payload);
            for (int i = 0; i < Feed.MostWaiting + 50; i++) // another session each
            {
                payload[at] = (byte)i;
                payload[at + 1] = (byte)(i >> 8);
                feed.Message(Prefix + "private", payload, false);
            }
            feed.Pump();
            Assert.AreEqual(96, feed.Budget.Chunks);
            Assert.LessOrEqual(came.Count, Feed.MostWaiting);
            Assert.AreEqual(Feed.MostWaiting + 50, came.Count + feed.Dropped);
        }

        /// <summary>Where the 64 bits of the session begin in the golden chunk.</summary>
        static int IndexOfNumber(byte[] payload)
        {
            byte[] key = { 0xa7, (byte)'s', (byte)'e', (byte)'s', (byte)'s', (byte)'i', (byte)'o', (byte)'n', 0xcf };
            for (int i = 0; i + key.Length < payload.Length; i++)
            {
                int same = 0;
                while (same < key.Length && payload[i + same] == key[same]) same++;
                if (same == key.Length) return i + key.Length;
            }
            throw new ArgumentException("no session");
        }

        [Test]
        public void AListenerThatThrowsLosesOneEventAlone()
        {
            var feed = Made("meta");
            bool first = true;
            var came = new List<Chunk>();
            feed.OnChunk += chunk =>
            {
                if (first)
                {
                    first = false;
                    throw new InvalidOperationException("of the application");
                }
                came.Add(chunk);
            };
            Say(feed, "private", "private");
            byte[] next = PayloadTests.Bytes("private");
            next[IndexOfNumber(next)] ^= 1;
            feed.Message(Prefix + "private", next, false);
            Assert.Throws<InvalidOperationException>(feed.Pump);
            feed.Pump();
            Assert.AreEqual(1, came.Count);
        }

        [Test]
        public void WrongSettingsAreAFaultAndNothingIsConnected()
        {
            var places = new[]
            {
                new BrokerPlace { Host = "" }, new BrokerPlace { Host = "mqtt://there" }, new BrokerPlace { Port = 0 },
                new BrokerPlace { Tls = true, PinnedSha256 = "12" }, new BrokerPlace { PinnedSha256 = new string('a', 64) },
                new BrokerPlace { Host = "far", User = "application", Password = "x" }, new BrokerPlace { Password = "x" },
                new BrokerPlace { KeepAliveSeconds = 0 }, new BrokerPlace { TimeoutSeconds = -1 },
            };
            foreach (var place in places)
                using (var feed = new Feed(place, "hmd-1", "features", "")) Assert.AreEqual(1, SettingsFaults(feed), place.Wrong());
            foreach (string device in new[] { "", null, "a/b", "#", "+", "-a", new string('a', 65) })
                using (var feed = new Feed(null, device, "features", "")) Assert.AreEqual(1, SettingsFaults(feed), device);
            Assert.AreEqual("", new BrokerPlace { Host = "far", Tls = true, User = "a", Password = "b", PinnedSha256 = Pin(':') + " " + Pin('\0') }.Wrong());
        }

        static string Pin(char between)
        {
            string pin = string.Join(between.ToString(), new List<string>(new string('a', 32).Split('a')).ConvertAll(one => "aB").GetRange(0, 32).ToArray());
            return pin.Replace("\0", "");
        }

        static int SettingsFaults(Feed feed)
        {
            var faults = FaultsOf(feed);
            feed.Pump();
            Assert.AreEqual(StreamState.NotLinked, feed.Status.State);
            return faults.FindAll(fault => fault.Kind == FaultKind.Settings).Count;
        }
    }
}
