// A scene with a client, both samples, the script of docs/unity.md and the inspector, driven as the engine would: mono scene.exe PORT STREAM FOLDER [PASSWORD-FILE]
// It prints what can be seen after each frame in which something changed, and reads a command from each line of its input.

using System;
using System.Collections.Generic;
using System.Globalization;
using System.Threading;
using Eyestream;
using UnityEngine;

static class Scene
{
    static readonly Queue<string> Commands = new Queue<string>();

    static void Listen()
    {
        for (string line = Console.ReadLine(); line != null; line = Console.ReadLine()) lock (Commands) Commands.Enqueue(line);
    }

    static string Seen(Vector3 v) { return string.Format(CultureInfo.InvariantCulture, "{0:F4} {1:F4} {2:F4}", v.x, v.y, v.z); }

    static void Main(string[] words)
    {
        CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
        Application.persistentDataPath = words[2];
        Application.isPlaying = true;
        var client = new GameObject("client").AddComponent<EyestreamClient>();
        client.host = "127.0.0.1";
        client.port = int.Parse(words[0]);
        client.stream = words[1];
        if (words.Length > 3)
        {
            client.user = "application";
            client.passwordFile = words[3];
        }
        int main = Thread.CurrentThread.ManagedThreadId;
        client.onStatus.AddListener(status => Console.WriteLine("status " + status.State + (main == Thread.CurrentThread.ManagedThreadId ? "" : " on another thread")));
        var camera = new GameObject("camera");
        camera.transform.position = new Vector3(0, 1.5f, 0);
        camera.transform.rotation = new Quaternion(0, (float)Math.Sqrt(0.5), 0, (float)Math.Sqrt(0.5)); // 90 degrees to the right
        var marker = new GameObject("marker").AddComponent<GazeMarker>();
        marker.client = client;
        marker.head = camera.transform;
        var panel = new GameObject("panel");
        panel.AddComponent<TextMesh>();
        panel.AddComponent<FeaturePanel>().client = client;
        var attention = new GameObject("attention").AddComponent<Attention>();
        attention.client = client;
        attention.head = camera.transform;
        var all = new MonoBehaviour[] { client, marker, panel.GetComponent<FeaturePanel>(), attention };
        foreach (var one in all) Engine.Send(one, "OnEnable");
        new Thread(Listen) { IsBackground = true }.Start();
        string before = "";
        while (true)
        {
            Time.unscaledTime += 0.011f;
            foreach (var one in all) Engine.Send(one, "Update");
            string now = "marker " + Seen(marker.transform.position) + " of " + Seen(marker.transform.localScale) + "\npanel "
                + panel.GetComponent<TextMesh>().text.Replace("\n", " | ");
            if (now != before) Console.WriteLine(now);
            before = now;
            lock (Commands) if (Commands.Count > 0) Do(Commands.Dequeue(), client);
            Console.Out.Flush();
            Thread.Sleep(11);
        }
    }

    static void Do(string command, EyestreamClient client)
    {
        if (command == "inspect")
        {
            var editor = new EyestreamClientEditor { target = client };
            editor.OnInspectorGUI();
            Application.isPlaying = false;
            client.pinnedSha256 = "12";
            editor.OnInspectorGUI();
            client.pinnedSha256 = "";
            Application.isPlaying = true;
            Console.WriteLine("inspected");
        }
        else if (command == "later") Time.unscaledTime += 60;
        else Engine.Send(client, command);
    }
}
